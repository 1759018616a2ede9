"""Class priors: the shares of classes among rows without labels."""
