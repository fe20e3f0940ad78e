"""What was learned from released engines, one file for each; made by tools/learn_profiles.py and never edited."""
