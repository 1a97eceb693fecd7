"""Response surfaces: a response mapped over configurations, with the choice of samples and the prediction of the
rest."""
