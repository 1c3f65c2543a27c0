"""What messaging decides: messages, their form as records, selectors. Pure."""
