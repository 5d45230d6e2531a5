"""What texts say: phrases and wordings of failures, faults, findings, objections and admissions, in many languages."""
