"""Telling somebody: notify-mail.sh with a sendmail of the test's own, notify-url.sh with a real server."""

import email
import email.policy
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.laboratory import Lab
from support.profiles import examples

pytestmark = pytest.mark.beside

FAILURE = {"APEVENT": "failure", "APREASON": "disk full: 0 left", "APSCRIPT": "/home/x/figure1.ap"}


class Receiver:
    """A server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.posts: list[dict[str, str]] = []
        self.types: list[str] = []
        self.status = 200
        self.answers = threading.Event()
        self.answers.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.answers.wait(30)
                outer.posts.append(json.loads(body))
                outer.types.append(str(self.headers["Content-Type"]))
                self.send_response(outer.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?key=se%20cret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.answers.set()
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(params=["curl", "python3"])
def client(request: pytest.FixtureRequest, lab: Lab) -> dict[str, str]:
    """An environment in which only one of the two clients is found."""
    directory = lab.path / "only"
    directory.mkdir()
    for name in (
        request.param,
        "sh",
        "iconv",
        "tr",
        "sed",
        "awk",
        "uname",
        "date",
        "basename",
        "dirname",
        "cat",
    ):
        found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
        if found is None:
            pytest.skip(f"no program {name}")
        (directory / name).symlink_to(found)
    return {"PATH": str(directory)}


def notify_url(lab: Lab, check: int | None = 0, **changes: str) -> str:
    return lab.run(str(lab.library / "notify-url.sh"), check=check, **changes).stderr


def test_an_address_is_told_of_a_failure(lab: Lab, receiver: Receiver, client: dict[str, str]) -> None:
    notify_url(lab, APURL=receiver.url, **client, **FAILURE)
    (post,) = receiver.posts
    assert receiver.types == ["application/json"]
    assert post["event"] == "failure"
    assert post["reason"] == "disk full: 0 left"
    assert post["text"].startswith("figure1.ap ")
    assert post["text"].endswith(": disk full: 0 left")
    assert (post["test"], post["results"], post["script"]) == ("test", str(lab.results), "/home/x/figure1.ap")
    assert post["host"] == os.uname().nodename
    assert post["time"].endswith("Z")


def test_an_address_is_told_of_completion(lab: Lab, receiver: Receiver, client: dict[str, str]) -> None:
    notify_url(lab, APURL=receiver.url, APEVENT="completion", **client)
    (post,) = receiver.posts
    assert (post["event"], post["reason"]) == ("completion", "")
    assert "complete" in post["text"]


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@example('"quoted"\\\t\n\x01\x7fé€')
@given(reason=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=60))
def test_whatever_the_reason_it_arrives(lab: Lab, receiver: Receiver, reason: str) -> None:
    receiver.posts.clear()
    notify_url(lab, APURL=receiver.url, APEVENT="failure", APREASON=reason)
    (post,) = receiver.posts
    kept = "".join(c for c in reason if (c >= " " and c != "\x7f") or c in "\n\t")
    assert post["reason"] == kept.rstrip("\n")  # $( ) of the shell takes them


def test_what_is_no_utf_8_does_not_keep_the_rest_from_arriving(lab: Lab, receiver: Receiver) -> None:
    notify_url(lab, APURL=receiver.url, APEVENT="failure", APREASON="caf\udce9 closed")
    assert receiver.posts[0]["reason"] == "caf closed"


def test_a_refusal_and_no_answer_are_failures_in_one_line_each(
    lab: Lab, receiver: Receiver, client: dict[str, str]
) -> None:
    receiver.status = 500
    refused = notify_url(lab, check=1, APURL=receiver.url, **client)
    receiver.answers.clear()
    late = notify_url(lab, check=1, APURL=receiver.url, APURLTIMEOUT="1", **client)
    absent = notify_url(lab, check=1, APURL="http://127.0.0.1:1/", **client)
    assert len(receiver.posts) == 1, "it waited for an answer longer than it was told to"
    for said in (refused, late, absent):
        assert said.splitlines()[-1].startswith("notify-url.sh: ")
        assert "Traceback" not in said


def test_the_address_is_not_in_the_list_of_processes(lab: Lab, receiver: Receiver) -> None:
    lab.program("curl", f'echo "$@" >{lab.path}/seen')
    notify_url(lab, APURL=receiver.url)
    assert "cret" not in (lab.path / "seen").read_text()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "set APURL"),
        ("", "set APURL"),
        ("file:///etc/passwd", "APURL is no address"),
        ('http://h/"\noutput = "/tmp/x', "APURL holds"),
        ("http://h/a\nurl=http://other", "APURL holds"),
    ],
)
def test_without_an_address_it_says_so_in_one_line(lab: Lab, url: str | None, message: str) -> None:
    said = notify_url(lab, check=1, **({} if url is None else {"APURL": url}))
    assert len(said.splitlines()) == 1
    assert message in said


def sendmail(lab: Lab) -> str:
    return str(lab.program("a-sendmail", f'echo "$@" >{lab.path}/options; cat >{lab.path}/mail'))


def mail(lab: Lab) -> EmailMessage:
    message = email.message_from_bytes((lab.path / "mail").read_bytes(), policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def test_mail_is_sent_on_a_failure(lab: Lab) -> None:
    lab.run("notify-mail.sh", APMAILTO="me@example.org", APSENDMAIL=sendmail(lab), **FAILURE)
    message = mail(lab)
    assert message["To"] == "me@example.org"
    assert message["Subject"] == f"figure1.ap failed on {os.uname().nodename}"
    text = message.get_content()
    assert "disk full: 0 left" in text
    assert f"results: {lab.results}" in text
    assert "test: test" in text
    assert (lab.path / "options").read_text() == "-t\n"


def test_mail_is_sent_on_completion(lab: Lab) -> None:
    around = {"APEVENT": "completion", "APSCRIPT": "/x/grep.ap", "APSENDMAIL": f"{sendmail(lab)} -f me"}
    lab.run("notify-mail.sh", APMAILTO="me@example.org", **around)
    assert mail(lab)["Subject"] == f"grep.ap is complete on {os.uname().nodename}"
    assert (lab.path / "options").read_text() == "-f me -t\n"


def test_what_is_told_adds_no_header(lab: Lab) -> None:
    script = "/x/a\nBcc: other@example.org\n\nä"
    around = {
        "APSCRIPT": script,
        "APREASON": "Ünicode\nCc: x",
        "APSENDMAIL": sendmail(lab),
        "APEVENT": "failure",
    }
    lab.run("notify-mail.sh", APMAILTO="me@example.org\nCc: third@example.org", **around)
    message = mail(lab)
    assert (message["Bcc"], message["Cc"]) == (None, None)
    assert "Ünicode" in message.get_content()


def test_without_somebody_to_tell_or_a_way_it_says_so_in_one_line(lab: Lab) -> None:
    nobody = lab.run("notify-mail.sh", check=1)
    lost = lab.run("notify-mail.sh", check=1, APMAILTO="me", APSENDMAIL="false")
    (line,) = nobody.stderr.splitlines()
    assert line.startswith("notify-mail.sh: ")
    assert "APMAILTO" in line
    (line,) = lost.stderr.splitlines()
    assert line.startswith("notify-mail.sh: ")
    assert "false -t" in line


def test_the_end_of_an_experiment_tells_all_that_are_named(lab: Lab, receiver: Receiver) -> None:
    around = {"APMAILTO": "me@example.org", "APSENDMAIL": sendmail(lab), "APURL": receiver.url}
    done = lab.run("ok.sh", APNOTIFY="mail url", **around)
    assert done.stderr == ""
    assert receiver.posts[0]["event"] == "completion"
    assert "is complete" in str(mail(lab)["Subject"])


def test_a_notice_that_fails_does_not_make_the_experiment_one_that_failed(lab: Lab) -> None:
    done = lab.run("ok.sh", APNOTIFY="mail pigeon")
    assert "notice by mail" in done.stderr
    assert any("APNOTIFY" in line and "'pigeon'" in line for line in done.stderr.splitlines())
    assert lab.run("ok.sh").stderr == ""


def test_noservices_stops_nothing_and_says_so(lab: Lab) -> None:
    lab.program("cron", "sleep 60")
    running = lab.start("bash", "-c", "exec -a cron sleep 60")
    named = lab.start("bash", "-c", "printf cron >/proc/self/comm; read -t 60 <> <(:)")
    try:
        said = lab.run("noservices.sh").stdout
        assert "nothing was stopped" in said
        assert running.poll() is None
        assert named.poll() is None
    finally:
        for process in (running, named):
            process.kill()
            process.communicate()
