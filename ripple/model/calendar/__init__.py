"""Time zones and the spans of their calendar, from days to years, and calendars of exchanges.

zone            offsets from UTC, from the package tzdata
spans           where spans of a zone begin; definition: the same by definition, for the reference
trading_spans   spans of trading sessions; exchange: sessions, from the package exchange-calendars
"""
