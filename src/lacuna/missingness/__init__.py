"""What hides parts of the state: mechanisms as arrays, their labels, and the Gymnasium wrapper."""
