"""What in JSON stands for values that have no form of their own there, as Flask writes them."""

from __future__ import annotations


def plain(value):
    """Dates, UUIDs, decimals and dataclasses; raises TypeError for others, as `json` expects."""
    if hasattr(value, "timetuple"):
        return _date(value)
    if type(value).__name__ in ("UUID", "Decimal"):
        return str(value)
    if hasattr(type(value), "__dataclass_fields__"):
        import dataclasses

        return dataclasses.asdict(value)
    if hasattr(value, "__html__"):
        return str(value.__html__())
    raise TypeError(f"{type(value).__name__} cannot be represented in JSON")


def _date(value) -> str:
    """As HTTP writes it; one that names no zone is in UTC."""
    import datetime
    from email.utils import format_datetime

    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    zone = datetime.timezone.utc
    return format_datetime(value.replace(tzinfo=zone) if value.tzinfo is None else value.astimezone(zone), usegmt=True)
