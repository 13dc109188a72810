"""What may be done to a run while it goes on: its channel, its pace, its people, interventions."""
