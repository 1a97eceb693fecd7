"""What each verb is asked with: no module here loads more than that takes."""
