"""Engine profiles from source: what the interpreter answers for chosen ids and depths, as rules that are tested."""
