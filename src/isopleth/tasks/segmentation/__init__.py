"""Series cut into stretches that are alike, at the least price."""
