"""Sessions in XProf: on the viewer's machine, or in a deployment behind the view."""
