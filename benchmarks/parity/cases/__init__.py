"""The differences, one file for each subject, in the order of the page."""
