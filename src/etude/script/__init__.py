"""The Auto-pilot language: from text to a flat program, and a machine that runs it step by step."""
