"""How sure we are: error probabilities, the noise rate, the transition matrix, the cut."""
