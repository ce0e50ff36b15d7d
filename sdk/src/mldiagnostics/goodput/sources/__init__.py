"""Where events come from without the program recording them."""
