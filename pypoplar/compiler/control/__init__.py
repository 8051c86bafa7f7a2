"""Programs as a tree of operations, which all other passes that look at programs work on."""
