"""The main job: one configuration, one run, one folder."""
