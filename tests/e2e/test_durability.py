"""What the server acknowledged is there after `kill -9`, and a stop loses nothing."""

import itertools
import os
import signal
import threading
import time

import httpx

from tests.e2e.conftest import Person, StartServer, register


class Load:
    """Adds and uploads without pause until the server is gone; keeps what was acknowledged."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.added: list[str] = []
        self.uploaded: list[str] = []
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            word = f"{self.person.user_id.replace('_', '')}word{number}"
            try:
                if self.person.add(f"the word is {word}", conversation=str(number)).status_code == 200:
                    self.added.append(word)
                reply = self.person.upload(f"{number}.txt", f"file number {number}".encode())
                if reply.status_code == 201:
                    self.uploaded.append(reply.json()["resource"]["id"])
            except httpx.TransportError:
                return


def test_every_acknowledged_add_and_upload_survives_a_kill_under_load(start_server: StartServer) -> None:
    server = start_server()
    loads = [Load(register(server, name)) for name in ("ann", "anna", "a_b")]
    while min(len(load.added) for load in loads) < 20:
        time.sleep(0.01)
    os.kill(server.pid, signal.SIGKILL)
    again = start_server()
    for load in loads:
        load.thread.join()
        load.person.at(again)
        assert load.uploaded
        for word in load.added:
            assert [result["text"].split(": ")[1] for result in load.person.search(word)] == [f"the word is {word}"]
        for resource_id in load.uploaded:
            assert load.person.http.get(f"/resources/{resource_id}/content").text.startswith("file number")


def test_a_stop_finishes_what_is_under_way_and_ends_cleanly(start_server: StartServer) -> None:
    server = start_server()
    ann = register(server, "ann")
    replies: list[httpx.Response] = []
    big = [f"line {number} " + "word " * 200 for number in range(400)]
    thread = threading.Thread(target=lambda: replies.append(ann.add(*big)))
    thread.start()
    time.sleep(0.1)
    os.kill(server.pid, signal.SIGTERM)
    thread.join()
    assert [reply.status_code for reply in replies] == [200]
    ann.at(start_server())
    assert ann.search("399")


def test_two_servers_on_one_folder_share_users_sessions_and_memories(start_server: StartServer) -> None:
    one, two = start_server(), start_server()
    ann, anna = register(one, "ann"), register(two, "anna")
    outcomes: dict[str, list[int]] = {"ann": [], "anna": []}

    def claim(person: Person) -> None:
        for number in range(20):
            outcomes[person.user_id].append(person.add(f"mine {number}", conversation=f"c{number}").status_code)

    threads = [threading.Thread(target=claim, args=(person,)) for person in (ann, anna)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pairs = list(zip(outcomes["ann"], outcomes["anna"], strict=True))
    assert all(sorted(pair) == [200, 403] for pair in pairs), "exactly one owner a session"
    for person, other in ((ann, two), (anna, one)):
        won = outcomes[person.user_id].count(200)
        assert len(person.at(other).search("mine", top_k=-1)) == won


def test_several_workers_serve_one_port(start_server: StartServer) -> None:
    server = start_server(workers="2")
    ann = register(server, "ann")
    for number in range(20):
        assert ann.add(f"green tea {number}", conversation=str(number)).status_code == 200
    assert len(ann.search("tea", top_k=-1)) == 20
