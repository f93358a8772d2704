"""ODS and Scuba: forms that are POSTed to the Graph API."""
