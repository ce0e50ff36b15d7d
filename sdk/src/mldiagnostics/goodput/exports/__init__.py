"""Exports of a monitor: observations, translated and sent to each destination."""
