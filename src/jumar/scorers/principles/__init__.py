"""Principles axis: a model judges code by described principles, and is itself judged on calibration examples."""
