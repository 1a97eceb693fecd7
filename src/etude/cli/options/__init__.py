"""The options of each verb: no module here loads more than these take."""
