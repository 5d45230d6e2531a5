"""OpenTelemetry spans and log records, of the GenAI conventions and of OpenInference, in every container."""
