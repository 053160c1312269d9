"""Google's background events and CloudEvents, of which Functions Framework makes one of the other for functions of either signature."""

from __future__ import annotations

import re

from .cloud_event import MalformedCloudEvent

_PUBSUB, _STORAGE, _FIRESTORE = "pubsub.googleapis.com", "storage.googleapis.com", "firestore.googleapis.com"
_AUTH, _DATABASE, _FIREBASE = "firebaseauth.googleapis.com", "firebasedatabase.googleapis.com", "firebase.googleapis.com"
_MESSAGE = "type.googleapis.com/google.pubsub.v1.PubsubMessage"
_PUBLISHED = "google.pubsub.topic.publish"

_KINDS = (
    (_PUBLISHED, _PUBSUB, "google.cloud.pubsub.topic.v1.messagePublished"),
    ("google.storage.object.finalize", _STORAGE, "google.cloud.storage.object.v1.finalized"),
    ("google.storage.object.delete", _STORAGE, "google.cloud.storage.object.v1.deleted"),
    ("google.storage.object.archive", _STORAGE, "google.cloud.storage.object.v1.archived"),
    ("google.storage.object.metadataUpdate", _STORAGE, "google.cloud.storage.object.v1.metadataUpdated"),
    ("providers/cloud.firestore/eventTypes/document.write", _FIRESTORE, "google.cloud.firestore.document.v1.written"),
    ("providers/cloud.firestore/eventTypes/document.create", _FIRESTORE, "google.cloud.firestore.document.v1.created"),
    ("providers/cloud.firestore/eventTypes/document.update", _FIRESTORE, "google.cloud.firestore.document.v1.updated"),
    ("providers/cloud.firestore/eventTypes/document.delete", _FIRESTORE, "google.cloud.firestore.document.v1.deleted"),
    ("providers/firebase.auth/eventTypes/user.create", _AUTH, "google.firebase.auth.user.v1.created"),
    ("providers/firebase.auth/eventTypes/user.delete", _AUTH, "google.firebase.auth.user.v1.deleted"),
    ("providers/google.firebase.analytics/eventTypes/event.log", _FIREBASE, "google.firebase.analytics.log.v1.written"),
    ("providers/google.firebase.database/eventTypes/ref.create", _DATABASE, "google.firebase.database.ref.v1.created"),
    ("providers/google.firebase.database/eventTypes/ref.write", _DATABASE, "google.firebase.database.ref.v1.written"),
    ("providers/google.firebase.database/eventTypes/ref.update", _DATABASE, "google.firebase.database.ref.v1.updated"),
    ("providers/google.firebase.database/eventTypes/ref.delete", _DATABASE, "google.firebase.database.ref.v1.deleted"),
)  # fmt: skip
"""A background event's type, the service that it is of, and the type of the CloudEvent."""
_OLDER = (
    ("providers/cloud.pubsub/eventTypes/topic.publish", _PUBSUB, "google.cloud.pubsub.topic.v1.messagePublished"),
    ("providers/cloud.storage/eventTypes/object.change", _STORAGE, "google.cloud.storage.object.v1.finalized"),
)
_TO_CLOUD_EVENT = {background: (service, kind) for background, service, kind in _KINDS + _OLDER}
_TO_BACKGROUND = {kind: background for background, _, kind in _KINDS}
_RESOURCES = {
    _FIREBASE: re.compile(r"(projects/[^/]+)/(events/[^/]+)"),
    _DATABASE: re.compile(r"projects/_/(instances/[^/]+)/(refs/.+)"),
    _FIRESTORE: re.compile(r"(projects/[^/]+/databases/\(default\))/(documents/.+)"),
    _STORAGE: re.compile(r"(projects/[^/]+/buckets/[^/]+)/(objects/.+)"),
}
"""How the resource of a background event becomes a source and a subject."""
_USER_TIMES = (("createdAt", "createTime"), ("lastSignedInAt", "lastSignInTime"))
"""Of the metadata of a user: in background events and in CloudEvents."""
_FIELDS = ("eventId", "timestamp", "eventType", "resource")


def background_fields(event, path: str) -> tuple[object, dict]:
    """Data and context of a body that is a background event, in the current form, in the older one, or what Pub/Sub pushes to an
    endpoint at `path`. Raises `MalformedCloudEvent`."""
    if not isinstance(event, dict) or not event:
        raise MalformedCloudEvent("the body is not an event: it must be an object with context and data")
    if _is_push(event):
        return _pushed(event["message"], path)
    context = event.get("context") or event
    if not isinstance(context, dict):
        raise MalformedCloudEvent("the body is not an event: it must be an object with context and data")
    return event.get("data", ""), {name: context.get(name, "") for name in _FIELDS}


def _is_push(event: dict) -> bool:
    message = event.get("message")
    return (
        "context" not in event
        and "subscription" in event
        and isinstance(message, dict)
        and "data" in message
        and "messageId" in message
    )


def _pushed(message: dict, path: str) -> tuple[dict, dict]:
    """The topic stands in the path if the subscription has been set up so."""
    topic = re.search(r"projects/[^/?]+/topics/[^/?]+", path)
    context = {
        "eventId": message["messageId"],
        "timestamp": message.get("publishTime") or _now(),
        "eventType": _PUBLISHED,
        "resource": {"service": _PUBSUB, "type": _MESSAGE, "name": topic[0] if topic else ""},
    }
    return {"@type": _MESSAGE, "data": message["data"], "attributes": message.get("attributes", {})}, context


def is_convertible(event: dict) -> bool:
    """Whether a CloudEvent has a form as a background event."""
    return event["type"] in _TO_BACKGROUND


def to_background(event: dict) -> tuple[object, dict]:
    """Data and context of a CloudEvent that `is_convertible`. Raises `MalformedCloudEvent`."""
    source = re.fullmatch(r"//([^/]+)/(.+)", event["source"])
    data = event.get("data")
    if source is None or not isinstance(data, dict):
        raise MalformedCloudEvent(f"an event of the type {event['type']} has a source //service/name and an object as its data")
    service, name = source[1], source[2]
    subject = event.get("subject", "")
    resource: object = f"{name}/{subject}"
    if service == _PUBSUB:
        resource = {"service": service, "name": name, "type": _MESSAGE}
        message = data.get("message", data)
        data = {key: value for key, value in message.items() if key not in ("messageId", "publishTime")}
    elif service == _AUTH:
        resource = name
        data = _with_times(data, {new: old for old, new in _USER_TIMES})
    elif service == _STORAGE:
        resource = {"name": f"{name}/{subject}", "service": service, "type": data.get("kind", "")}
    elif service == _DATABASE:
        resource = re.sub("/locations/[^/]+", "", name) + f"/{subject}"
    context = {"eventId": event["id"], "timestamp": event.get("time", ""), "eventType": _TO_BACKGROUND[event["type"]]}
    return data, {**context, "resource": resource}


def to_cloud_event(body, path: str) -> dict:
    """The CloudEvent's attributes and `data` of a background event. Raises `MalformedCloudEvent`."""
    data, context = background_fields(body, path)
    known = _TO_CLOUD_EVENT.get(context["eventType"])
    if known is None:
        raise MalformedCloudEvent("the request is not a CloudEvent, and no background event that has a form as one")
    service, kind = known
    resource = context["resource"]
    if isinstance(resource, dict):
        service, resource = resource.get("service") or service, resource.get("name", "")
    subject = ""
    if service in _RESOURCES:
        parts = _RESOURCES[service].fullmatch(str(resource))
        if parts is None:
            raise MalformedCloudEvent(f"the resource {str(resource)[:200]!r} is not one of {service}")
        resource, subject = parts[1], parts[2]
    if service == _PUBSUB:
        data = {"message": {"messageId": context["eventId"], "publishTime": context["timestamp"], **_object(data)}}
    elif service == _AUTH:
        data = _with_times(_object(data), dict(_USER_TIMES))
        subject = f"users/{data['uid']}" if "uid" in data else subject
    elif service == _DATABASE:
        if "domain" not in body:
            raise MalformedCloudEvent("an event of Firebase's database has a domain")
        domain = str(body["domain"])
        location = "us-central1" if domain == "firebaseio.com" else domain.partition(".")[0]
        resource = f"projects/_/locations/{location}/{resource}"
    attributes = {
        "id": context["eventId"],
        "time": context["timestamp"],
        "specversion": "1.0",
        "datacontenttype": "application/json",
        "type": kind,
        "source": f"//{service}/{resource}",
    }
    return {**attributes, **({"subject": subject} if subject else {}), "data": data}


def _object(data) -> dict:
    if not isinstance(data, dict):
        raise MalformedCloudEvent("the event's data must be an object")
    return data


def _with_times(data: dict, names: dict[str, str]) -> dict:
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        return data
    return {**data, "metadata": {names.get(name, name): value for name, value in metadata.items()}}


def _now() -> str:
    import datetime

    return datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z")
