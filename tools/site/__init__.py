"""The documentation's site, made from the README, the rules' own pages, docs/, the commands' help and the schemas."""
