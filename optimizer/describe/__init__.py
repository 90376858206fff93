"""Plans and choices as text."""
