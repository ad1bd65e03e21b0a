//! What a shard's loop counts, shown: turns, polls and stalls, the mesh, the disk.

use std::cell::RefCell;
use std::rc::Rc;

use env::{Class, ClassStats, IoKind, IoStats, Mesh, Stats};
use metrics::{Name, Registry, Unit};

use crate::figures::{NANOS, gauge};
use crate::message::Message;

/// Numbers of the loop that only grow: type, name, what they are.
const COUNTS: &[(&str, &str, &str, fn(&Stats) -> u64)] = &[
    ("EventLoop", "Turns", "Iterations of the event loop.", |s| s.turns),
    ("EventLoop", "Sleeps", "Times that a shard slept because it had no work.", |s| s.sleeps),
    ("EventLoop", "RingEnters", "Calls of io_uring_enter.", |s| s.ring_enters),
    ("EventLoop", "RingSubmissions", "Entries submitted to io_uring.", |s| s.ring_submissions),
    ("EventLoop", "WakesSent", "Wake-ups sent to sleeping shards.", |s| s.wakes_sent),
    ("EventLoop", "WakesForeign", "Wake-ups of tasks from other threads.", |s| s.wakes_foreign),
    ("EventLoop", "HelperJobs", "Jobs sent to helper threads.", |s| s.helper_jobs),
    ("Mesh", "Sent", "Messages sent between shards.", |s| s.mesh_sent),
    ("Mesh", "Received", "Messages received from shards.", |s| s.mesh_received),
    ("Mesh", "Spilled", "Messages that found the queue to their shard full.", |s| s.mesh_spilled),
];

/// Numbers that rise and fall.
const GAUGES: &[(&str, &str, &str, fn(&Stats) -> u64)] = &[
    ("EventLoop", "Timers", "Live timers.", |s| s.timers),
    ("EventLoop", "Tasks", "Live tasks.", |s| s.tasks),
    ("Disk", "InFlight", "Operations in flight.", |s| s.io_in_flight),
    ("Disk", "Queued", "Operations in shards' own queues.", |s| s.io_queued),
];

/// The most that there was at a time on one shard.
const PEAKS: &[(&str, &str, &str, fn(&Stats) -> u64)] = &[
    ("Disk", "InFlightMax", "The most operations in flight on a shard.", |s| s.io_in_flight_max),
    ("Disk", "QueuedMax", "The longest queue of a shard.", |s| s.io_queued_max),
];

/// Of each class of tasks.
const CLASSES: &[(&str, Unit, &str, fn(&ClassStats) -> u64)] = &[
    ("Polls", Unit::Count, "Polls of tasks.", |c| c.polls),
    ("BusyTime", Unit::Micros, "Time in polls of tasks.", |c| c.busy_ns / NANOS),
    ("Stalls", Unit::Count, "Polls of more than a millisecond.", |c| c.stalls),
    ("Spawned", Unit::Count, "Tasks started.", |c| c.spawned),
];

/// Of each class and kind of disk operation.
const DISK: &[(&str, Unit, &str, fn(&IoStats) -> u64)] = &[
    ("Operations", Unit::Count, "Operations completed.", |io| io.ops),
    ("Errors", Unit::Count, "Operations that failed.", |io| io.errors),
    ("Moved", Unit::Bytes, "Bytes read or written.", |io| io.bytes),
    ("DeviceTime", Unit::Micros, "Time from submission to completion.", |io| io.device_ns / NANOS),
    ("QueueTime", Unit::Micros, "Time in the shard's own queue.", |io| io.queue_ns / NANOS),
];

/// Shows the loop's counters, as of the last look at them.
pub(crate) fn register_loop(
    registry: &Registry,
    observed: &Rc<RefCell<Stats>>,
    mesh: &Mesh<Message>,
) {
    for (kind, name, help, value) in COUNTS {
        let probe = reader(observed, *value);
        registry.count_probe(Name::new(kind, name), Unit::Count, help, probe);
    }
    for (kind, name, help, value) in GAUGES {
        let probe = reader(observed, *value);
        let probe = move || gauge(probe());
        registry.probe(Name::new(kind, name), Unit::Count, help, probe);
    }
    for (kind, name, help, value) in PEAKS {
        let probe = reader(observed, *value);
        registry.peak_probe(Name::new(kind, name), Unit::Count, help, probe);
    }
    let unsent = mesh.clone();
    registry.probe(
        Name::new("Mesh", "Unsent"),
        Unit::Count,
        "Messages that wait to be sent to other shards.",
        move || gauge(unsent.unsent()),
    );
    for class in Class::ALL {
        register_class(registry, observed, class);
    }
}

fn register_class(registry: &Registry, observed: &Rc<RefCell<Stats>>, class: Class) {
    let name = |name| Name::new("EventLoop", name).scope(class.name());
    for (of, unit, help, value) in CLASSES {
        let value = *value;
        let probe = reader(observed, move |stats| value(&stats.class(class)));
        registry.count_probe(name(of), *unit, help, probe);
    }
    let longest = reader(observed, move |s| s.class(class).longest_ns / NANOS);
    registry.peak_probe(name("LongestPoll"), Unit::Micros, "The longest poll of a task.", longest);
    for kind in IoKind::ALL {
        let name = |name| Name::new("Disk", name).path(class.name()).scope(kind.name());
        for (of, unit, help, value) in DISK {
            let value = *value;
            let probe = reader(observed, move |stats| value(&stats.io(class, kind)));
            registry.count_probe(name(of), *unit, help, probe);
        }
        let longest = reader(observed, move |s| s.io(class, kind).longest_ns / NANOS);
        let help = "The longest time from submission to completion.";
        registry.peak_probe(name("Longest"), Unit::Micros, help, longest);
    }
}

fn reader(
    observed: &Rc<RefCell<Stats>>,
    value: impl Fn(&Stats) -> u64 + 'static,
) -> impl Fn() -> u64 + 'static {
    let observed = Rc::clone(observed);
    move || value(&observed.borrow())
}
