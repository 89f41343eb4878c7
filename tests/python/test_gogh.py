"""The Python client: what is sent, when, and that nothing ever hurts the job."""
import asyncio
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import gogh

HEAD = "gogh1 7 2 " + "5" * 32


class Job(unittest.TestCase):
    """Each test is a job of its own with an inbox and a clock that stands still."""

    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inbox.bind(self.dir.name + "/reports")
        self.inbox.setblocking(False)
        self.now_s = 100.0
        environment = {"GOGH_REPORTS": "unix:" + self.dir.name + "/reports", "GOGH_JOB": "7",
                       "GOGH_RUN": "2", "GOGH_SECRET": "5" * 32}
        for p in (mock.patch.dict(os.environ, environment),
                  mock.patch("gogh.time.monotonic", lambda: self.now_s)):
            p.start()
            self.addCleanup(p.stop)

    def tearDown(self):
        self.inbox.close()
        self.dir.cleanup()

    def came(self):
        """What came since: counts, and keys where there are any."""
        got = []
        try:
            while True:
                text = self.inbox.recv(2048).decode("ascii")
                self.assertTrue(text.startswith(HEAD + " "), text)
                got.append(text[len(HEAD) + 1:])
        except BlockingIOError:
            return got


class Inside(Job):
    """What trains, and counts its steps."""

    def test_the_first_count_and_the_last_are_told(self):
        with gogh.track() as t:
            for _ in range(500):
                t.step()
        self.assertEqual(self.came(), ["1", "500"])

    def test_one_datagram_a_second(self):
        with gogh.track() as t:
            for _ in range(100):
                t.step(2)
                self.now_s += 0.1
            self.assertIn(len(self.came()), (10, 11))

    def test_counts_go_on_from_before_the_restart(self):
        with mock.patch.dict(os.environ, {"GOGH_STEPS_DONE": "40", "GOGH_RESTART": "3"}):
            self.assertEqual((gogh.steps_done(), gogh.restarts()), (40, 3))
            with gogh.track() as t:
                t.step()
            with gogh.track(start=5) as t:
                t.step()
        self.assertEqual(self.came(), ["41", "6"])

    def test_the_first_total_says_where_the_checkpoint_was(self):
        with mock.patch.dict(os.environ, {"GOGH_STEPS_DONE": "40"}):
            with gogh.track() as t:
                t.steps(25)
                t.steps(20)
                t.step()
        self.assertEqual(self.came(), ["25", "26"])

    def test_who_counts_nothing_does_not_repeat_what_is_known(self):
        with mock.patch.dict(os.environ, {"GOGH_STEPS_DONE": "40"}):
            with gogh.track():
                pass
        self.assertEqual(self.came(), [])

    def test_a_total_never_falls(self):
        with gogh.track() as t:
            t.steps(90)
            t.steps(3)
            t.steps(float("nan"))
            t.steps("many")
            self.assertEqual(t.total, 90)
        self.assertEqual(self.came(), ["90"])

    def test_no_step_is_told_as_none(self):
        with gogh.track():
            pass
        self.assertEqual(self.came(), ["0"])

    def test_a_daemon_that_is_away_is_tried_again_soon(self):
        os.rename(self.dir.name + "/reports", self.dir.name + "/away")
        with gogh.track() as t:
            t.step()
            os.rename(self.dir.name + "/away", self.dir.name + "/reports")
            t.step()
            self.assertEqual(self.came(), [])
            self.now_s += 0.2
            t.step()
            self.assertEqual(self.came(), ["3"])

    def test_a_full_inbox_does_not_hold_the_job(self):
        with gogh.track(every_s=0) as t:
            for _ in range(5000):
                t.step()
        self.assertLess(len(self.came()), 5000)

    def test_a_daemon_that_came_anew_is_found(self):
        with gogh.track(every_s=0) as t:
            t.step()
            self.came()
            self.inbox.close()
            os.unlink(self.dir.name + "/reports")
            self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.inbox.bind(self.dir.name + "/reports")
            self.inbox.setblocking(False)
            t.step()
            self.assertEqual(self.came(), ["2"])

    def test_many_threads_lose_no_step(self):
        with gogh.track() as t:
            threads = [threading.Thread(target=lambda: [t.step() for _ in range(1000)])
                       for _ in range(8)]
            for x in threads:
                x.start()
            for x in threads:
                x.join()
            self.assertEqual(t.total, 8000)
        self.assertEqual(self.came()[-1], "8000")

    def test_running_out_of_memory_is_told(self):
        class OutOfMemoryError(RuntimeError):
            pass

        for error in (OutOfMemoryError("x"), RuntimeError("CUDA out of memory. Tried ...")):
            with self.assertRaises(RuntimeError):
                with gogh.track() as t:
                    t.step()
                    raise error
            self.assertEqual(self.came()[1], "1 unfit=1")
        with self.assertRaises(ValueError):
            with gogh.track() as t:
                raise ValueError("out of memory of what was said")
        self.assertEqual(self.came(), ["0"])

    def test_a_forked_worker_keeps_silent_at_its_end(self):
        with gogh.track() as t:
            t.step(5)
            self.came()
            child = os.fork()
            if child == 0:
                t.step()
                t.close()
                os._exit(0)
            os.waitpid(child, 0)
            self.assertEqual(self.came(), [])
            t.step()
        self.assertEqual(self.came(), ["6"])

    def test_a_fork_in_the_middle_of_a_step_holds_nobody(self):
        with gogh.track() as t:
            with t._lock:  # as another thread would
                child = os.fork()
                if child == 0:
                    signal.alarm(300)
                    t.step()
                    os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_udp(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            s.settimeout(300)
            with mock.patch.dict(os.environ, {"GOGH_REPORTS": "udp:127.0.0.1:%d" % s.getsockname()[1]}):
                with gogh.track() as t:
                    t.step(3)
            self.assertEqual(s.recv(1024).decode(), HEAD + " 3")

    def test_a_hook_of_a_pytorch_optimizer_counts_its_steps(self):
        hook = gogh.torch_hook()
        for _ in range(3):
            self.assertIsNone(hook("optimizer", (), {}))
        self.assertEqual(hook.tracker.total, 3)
        hook.tracker.close()
        self.assertEqual(self.came(), ["1", "3"])

    def test_keras(self):
        keras, callbacks = types.ModuleType("keras"), types.ModuleType("keras.callbacks")
        callbacks.Callback = type("Callback", (), {})
        with mock.patch.dict(sys.modules, {"keras": keras, "keras.callbacks": callbacks}):
            c = gogh.KerasCallback()
        self.assertIsInstance(c, callbacks.Callback)
        for i in range(4):
            c.on_train_batch_end(i, {"loss": 1})
        c.on_train_end()
        self.assertEqual(self.came(), ["1", "4"])
        c.on_train_batch_end(0)  # another fit()
        c.on_train_end()
        self.assertEqual(self.came(), ["5"])
        c.tracker.close()

    def test_hugging_face(self):
        transformers = types.ModuleType("transformers")
        transformers.TrainerCallback = type("TrainerCallback", (), {})
        with mock.patch.dict(sys.modules, {"transformers": transformers}):
            c = gogh.TrainerCallback()
        self.assertIsInstance(c, transformers.TrainerCallback)
        state = types.SimpleNamespace(global_step=0, is_world_process_zero=True)
        control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        for i in range(1, 4):
            state.global_step = i
            self.assertIs(c.on_step_end(None, state, control), control)
        with mock.patch("gogh.checkpoint_requested", lambda: True):
            c.on_step_end(None, state, control)
        self.assertTrue(control.should_save and control.should_training_stop)
        c.on_train_end(None, state, control)
        state.is_world_process_zero, state.global_step = False, 99
        c.on_train_end(None, state, control)
        self.assertEqual(self.came(), ["1", "3"])
        c.tracker.close()


class Serving(Job):
    """Nobody speaks by himself here, but where a test says so."""

    def setUp(self):
        super().setUp()
        self.addCleanup(mock.patch.stopall)
        mock.patch.dict(os.environ, {"GOGH_LATENCY_S": "0.2"}).start()
        mock.patch("gogh.Tracker._start_timer").start()

    def bins(self, texts):
        """Arrivals by bin, of several datagrams."""
        got = []
        for text in texts:
            for word in text.split():
                if not word.startswith("arr="):
                    continue
                width, counts = word[4:].split(":")
                self.assertEqual(width, "25")
                for c in counts.split(","):
                    got += [0] * int(c[1:]) if c[0] == "z" else [int(c)]
        return got

    def test_a_request_is_counted_late_or_not(self):
        t = gogh.track()
        t.ready()
        for latency_s in (0.1, 0.3, 0.15):
            with t.request():
                self.now_s += latency_s
        t.batch(3, 0.5)
        t.batch(0, 9)
        t.batch("x", None)
        self.now_s += 1
        t.arrive()
        t.close()
        came = self.came()
        self.assertEqual(came[0], "0 ready=1 late=0 q=0")
        self.assertTrue(came[-1].startswith("3 ready=0 late=1 q=1 b=1 busy=0.5"), came[-1])
        self.assertEqual(came[-1].count("arr="), 0, "the bin of the last one is not over")

    def test_bins_join(self):
        t = gogh.track()
        t.ready()
        for i in range(400):  # every 10 ms
            t.arrive()
            self.now_s += 0.01
        t.close()
        came = self.came()
        bins = self.bins(came)
        self.assertIn(len(bins), (159, 160))
        self.assertIn(sum(bins), range(396, 401))
        self.assertLessEqual(max(bins), 3)
        self.assertIn(len(came), range(5, 8))

    def test_quiet_bins_are_short(self):
        t = gogh.track()
        t.ready()
        self.now_s += 1.001
        t.arrive()
        self.now_s += 1.001
        t.flush()
        t.close()
        self.assertEqual([c.split()[-1] for c in self.came()][1:], ["arr=25:z40", "arr=25:1,z39"])

    def test_what_has_no_room_comes_next(self):
        t = gogh.track(every_s=1000)
        t.ready()
        for _ in range(1000):
            t.arrive()
            t.arrive()
            self.now_s += 0.05
        for _ in range(5):
            self.now_s += 1000
            t.batch(0, 0)
        came = self.came()
        self.assertTrue(all(len(gogh.track()._head) + 1 + len(c) <= 1400 for c in came))
        self.assertGreater(len(came), 2)

    def test_what_could_not_be_sent_is_told_with_the_next(self):
        t = gogh.track()
        t.ready()
        self.came()
        self.inbox.close()
        t.arrive()
        self.now_s += 1.01
        t.arrive()  # nobody is there
        os.unlink(self.dir.name + "/reports")
        self.inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inbox.bind(self.dir.name + "/reports")
        self.inbox.setblocking(False)
        self.now_s += 1.01
        t.arrive()
        t.close()
        self.assertEqual(sum(self.bins(self.came())), 2)

    def test_after_a_long_silence_bins_begin_anew(self):
        t = gogh.track()
        t.ready()
        t.arrive()
        self.now_s += 1e6
        t.arrive()
        self.assertEqual(self.bins(self.came()), [])
        t.close()

    def test_many_threads_lose_no_request(self):
        t = gogh.track()

        def work():
            for _ in range(200):
                with t.request():
                    pass

        threads = [threading.Thread(target=work) for _ in range(8)]
        for x in threads:
            x.start()
        for x in threads:
            x.join()
        t.close()
        self.assertTrue(self.came()[-1].startswith("1600 late=0 q=0"))

    def test_an_error_of_the_handler_is_its_own(self):
        t = gogh.track()
        with self.assertRaises(KeyError):
            with t.request():
                raise KeyError
        t.close()
        self.assertTrue(self.came()[-1].startswith("1 late=0 q=0"))

    def test_a_quiet_server_speaks_by_itself(self):
        mock.patch.stopall()
        environment = {"GOGH_REPORTS": "unix:" + self.dir.name + "/reports", "GOGH_JOB": "7",
                       "GOGH_RUN": "2", "GOGH_SECRET": "5" * 32}
        with mock.patch.dict(os.environ, environment):
            t = gogh.track(every_s=0.01)
            t.ready()
            for _ in range(3):
                self.assertTrue(select.select([self.inbox], [], [], 300)[0])
                self.assertIn(" ready=1 ", self.inbox.recv(2048).decode("ascii"))
            t.close()

    def test_a_forked_worker_says_nothing(self):
        t = gogh.track()
        t.ready()
        self.came()
        pid = os.fork()
        if pid == 0:
            self.now_s += 10
            with t.request():
                pass
            t.close()
            os._exit(0)
        os.waitpid(pid, 0)
        self.assertEqual(self.came(), [])
        t.close()

    def test_asgi(self):
        async def app(scope, receive, send):
            if scope["type"] == "lifespan":
                await send({"type": "lifespan.startup.complete"})
            elif scope["path"] == "/bad":
                raise ValueError

        async def run():
            sent = []

            async def send(message):
                sent.append(message)

            await served({"type": "lifespan"}, None, send)
            self.assertEqual(len(sent), 1)
            await served({"type": "websocket", "path": "/"}, None, send)
            await served({"type": "http", "path": "/"}, None, send)
            with self.assertRaises(ValueError):
                await served({"type": "http", "path": "/bad"}, None, send)

        served = gogh.ASGIMiddleware(app)
        asyncio.run(run())
        served.tracker.close()
        came = self.came()
        self.assertEqual(came[0], "0 ready=1 late=0 q=0")
        self.assertTrue(came[-1].startswith("2 ready=0 late=0 q=0"), came)


class Outside(unittest.TestCase):
    def test_nothing_happens_outside_gogh(self):
        bare = {k: v for k, v in os.environ.items() if not k.startswith("GOGH_")}
        for more in ({}, {"GOGH_REPORTS": "nonsense", "GOGH_JOB": "1", "GOGH_RUN": "0",
                          "GOGH_SECRET": "x"},
                     {"GOGH_REPORTS": "udp:nowhere", "GOGH_JOB": "1", "GOGH_RUN": "0",
                      "GOGH_SECRET": "x", "GOGH_STEPS_DONE": "-3"}):
            with mock.patch.dict(os.environ, {**bare, **more}, clear=True):
                self.assertEqual(gogh.inside(), bool(more))
                with gogh.track() as t:
                    t.step()
                    t.unfit()
                    self.assertEqual(t.total, 1)

    def test_frameworks_are_not_imported(self):
        for name in ("torch", "keras", "tensorflow", "transformers"):
            self.assertNotIn(name, sys.modules)
        with self.assertRaises(AttributeError):
            gogh.NoSuchThing

    def test_signals_ask_for_a_checkpoint(self):
        before = signal.getsignal(signal.SIGUSR1)
        try:
            gogh.catch_checkpoint_signals((signal.SIGUSR1,))
            self.assertFalse(gogh.checkpoint_requested())
            os.kill(os.getpid(), signal.SIGUSR1)
            self.assertTrue(gogh.checkpoint_requested())
        finally:
            signal.signal(signal.SIGUSR1, before)
            gogh._requested = False


if __name__ == "__main__":
    unittest.main(verbosity=0)
