"""Tool calls written in prose: how models that know no API for it were taught to say them."""
