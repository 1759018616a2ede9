"""What share each class has among rows without labels."""
