"""What providers say of a body that they refuse: their status, their words, the values of the body put in."""
