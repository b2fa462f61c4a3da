"""Generations: prompts of the best agent are varied; a variant is kept if it wins on fresh paired runs."""
