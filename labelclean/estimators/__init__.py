"""The scikit-learn face: estimators on the same engine and judge as the command line."""
