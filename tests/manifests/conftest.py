"""Tests that need a program which most machines lack are collected only where it is."""

import shutil

collect_ignore = [] if shutil.which("promtool") else ["test_alert_cases.py"]
