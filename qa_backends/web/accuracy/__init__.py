"""The accuracy tab."""
