"""The linear mixed model: design, objective, optimum, fit."""
