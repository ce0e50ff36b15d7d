"""Files of the volume for readers whose rights the API server has checked."""
