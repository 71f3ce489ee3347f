"""What flows between stages over links: who follows whom, credit, frames. No I/O, no clock."""
