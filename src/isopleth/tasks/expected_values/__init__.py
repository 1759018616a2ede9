"""Values to expect: of columns where others are known, and of missing cells."""
