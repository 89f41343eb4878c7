"""The Python client: what is sent, when, and that nothing ever hurts the job."""
import os
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


class Inside(unittest.TestCase):
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
                text = self.inbox.recv(1024).decode("ascii")
                self.assertTrue(text.startswith(HEAD + " "), text)
                got.append(text[len(HEAD) + 1:])
        except BlockingIOError:
            return got

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
