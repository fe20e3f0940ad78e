"""Results of earlier scans, kept for as long as what they were computed from is unchanged."""
