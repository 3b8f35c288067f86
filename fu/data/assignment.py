"""Which client holds which class. A pure function of three numbers, so that the plan can check it before any job."""

from fu.errors import UserError


def pathological(clients: int, classes: int, classes_per_client: int) -> list[list[int]]:
    """Return, for each class, the clients that share it (`pat` of FedOSD's code).

    For each class in order, the first int(clients * classes_per_client / classes) clients that still have room
    for a class take it. Raises `UserError` where a client or a class would be left empty.
    """
    if not 1 <= classes_per_client <= classes:
        raise UserError(f"a client cannot hold {classes_per_client} classes of {classes}; 1 to {classes} are allowed")
    sharing = clients * classes_per_client // classes
    room = [classes_per_client] * clients
    holders: list[list[int]] = []
    for _ in range(classes):
        chosen = [client for client in range(clients) if room[client] > 0][:sharing]
        for client in chosen:
            room[client] -= 1
        holders.append(chosen)
    held = {client for chosen in holders for client in chosen}
    empty = [client for client in range(clients) if client not in held]
    orphans = [label for label, chosen in enumerate(holders) if not chosen]
    if empty or orphans:
        what = f"client {empty[0]} without data" if empty else f"class {orphans[0]} without a client"
        raise UserError(
            f"{clients} clients with {classes_per_client} of {classes} classes each leave {what}; "
            f"allowed is clients * classes_per_client >= {classes} with every client served"
        )
    return holders
