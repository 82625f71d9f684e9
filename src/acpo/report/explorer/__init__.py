"""What the report's page explores: its data, its libraries, and how both are packed into one offline file."""
