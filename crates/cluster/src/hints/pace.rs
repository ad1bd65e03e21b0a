//! How many hints a node is sent before it acknowledged the first of them: as many as it takes
//! without becoming slower.
//!
//! Where hints wait at the node, and with them its reads, acknowledgements take longer than they
//! did. So there may be one more under way for each round in which they took about as long as the
//! shortest of late, and fewer after one in which they did not. Nothing has to be set for that, and
//! a node that has nothing else to do is sent what it can take. (Cassandra sends a number of bytes
//! a second whatever the node does: so it is here where `hinted_handoff_throttle` is set.)

use std::time::Duration;

use env::Instant;

/// Hints under way at most.
const MOST: f64 = 1024.0;
/// Hints under way at the beginning.
const FIRST: f64 = 8.0;
/// An acknowledgement that takes longer than the shortest so many times, and this much more, says
/// that hints wait.
const SLOWER: u32 = 2;
const SLACK: Duration = Duration::from_millis(1);
/// Hints under way at least, where the node does not fail: nodes with much to do are always slow.
const LEAST: f64 = 16.0;
/// What is left of the window when hints wait, and when a node fails.
const LESS: f64 = 0.8;
const HALF: f64 = 0.5;
/// How often the shortest is found out anew, with few hints under way: the node may have come to do
/// other things, or the path be another, and that is not to be taken for hints that wait.
const PROBE: Duration = Duration::from_secs(5);
/// What is left of the window meanwhile, and acknowledgements that it takes.
const QUARTER: f64 = 0.25;
const PROBED: u32 = 8;

/// The shortest acknowledgement, being found out.
#[derive(Debug)]
struct Probe {
    /// The window before.
    window: f64,
    /// Acknowledgements of hints that were sent before.
    before: u32,
    /// Acknowledgements that it still takes.
    left: u32,
    shortest: Duration,
}

/// The pace of one delivery.
#[derive(Debug)]
pub(super) struct Pace {
    window: f64,
    shortest: Duration,
    /// Did acknowledgements become slower yet? Until then the window doubles with each round.
    has_slowed: bool,
    /// Acknowledgements until it may become smaller again.
    settling: f64,
    probe: Option<Probe>,
    probed: Instant,
}

impl Pace {
    pub fn new(now: Instant) -> Self {
        Self {
            window: FIRST,
            shortest: Duration::MAX,
            has_slowed: false,
            settling: 0.0,
            probe: None,
            probed: now,
        }
    }

    /// May another be sent with so many under way?
    pub fn has_room(&self, under_way: usize) -> bool {
        under_way < self.window as usize
    }

    /// One was acknowledged after so long: was that slow?
    pub fn acknowledged(&mut self, now: Instant, after: Duration) -> bool {
        if let Some(probe) = &mut self.probe {
            if probe.before > 0 {
                probe.before -= 1;
                return false;
            }
            probe.shortest = probe.shortest.min(after);
            probe.left -= 1;
            if probe.left == 0 {
                self.shortest = probe.shortest;
                self.window = probe.window;
                (self.probe, self.probed) = (None, now);
            }
            return false;
        }
        self.shortest = self.shortest.min(after);
        self.settling -= 1.0;
        let is_slow = after > self.shortest.saturating_mul(SLOWER).saturating_add(SLACK);
        if !is_slow {
            let more = if self.has_slowed { 1.0 / self.window } else { 1.0 };
            self.window = (self.window + more).min(MOST);
        } else if self.settling <= 0.0 {
            self.has_slowed = true;
            self.shrink(LESS, LEAST);
        }
        if now.since(self.probed) >= PROBE {
            let (window, before) = (self.window, self.window as u32);
            let shortest = Duration::MAX;
            self.probe = Some(Probe { window, before, left: PROBED, shortest });
            self.window = (window * QUARTER).max(1.0);
        }
        is_slow
    }

    /// One was not.
    pub fn failed(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.window = probe.window;
        }
        self.has_slowed = true;
        self.shrink(HALF, 1.0);
    }

    fn shrink(&mut self, to: f64, least: f64) {
        // those under way were sent at the old pace: what they take says nothing of the new one
        self.settling = self.window;
        self.window = (self.window * to).max(least.min(self.window));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const MILLI: Duration = Duration::from_millis(1);

    /// A node that takes `service` for each hint, one after the other, at the end of a way that
    /// changes with time.
    struct Node {
        service: Duration,
        way: fn(Duration) -> Duration,
    }

    impl Node {
        /// Hints delivered from one time to another, and the longest that one took.
        fn run(&self, from: Duration, to: Duration) -> (u32, Duration) {
            let at = |time: Duration| Instant::ZERO + time;
            let mut pace = Pace::new(Instant::ZERO);
            let (mut now, mut free) = (Duration::ZERO, Duration::ZERO);
            let mut under_way: VecDeque<(Duration, Duration)> = VecDeque::new();
            let (mut delivered, mut longest) = (0, Duration::ZERO);
            while now < to {
                while pace.has_room(under_way.len()) {
                    let half = (self.way)(now) / 2;
                    free = free.max(now + half) + self.service;
                    under_way.push_back((now, free + half));
                }
                let Some((sent, acknowledged)) = under_way.pop_front() else { break };
                now = acknowledged.max(now);
                pace.acknowledged(at(now), now - sent);
                if now >= from {
                    delivered += 1;
                    longest = longest.max(now - sent);
                }
            }
            (delivered, longest)
        }
    }

    #[test]
    fn a_node_is_kept_busy_and_no_queue_grows_there() {
        let ways: [(Duration, fn(Duration) -> Duration); 2] =
            [(MILLI / 20, |_| MILLI), (MILLI, |_| MILLI * 5)];
        for (service, way) in ways {
            let (from, to) = (Duration::from_secs(5), Duration::from_secs(60));
            let (delivered, longest) = Node { service, way }.run(from, to);
            let most = ((to - from).as_secs_f64() / service.as_secs_f64()) as u32;
            assert!(delivered > most * 8 / 10, "{delivered} of {most}");
            assert!(longest < (way(to) + service) * 3 + SLACK * 2, "{longest:?}");
        }
    }

    #[test]
    fn a_way_that_becomes_longer_is_found_out() {
        let change = Duration::from_secs(20);
        let way = |now| if now < Duration::from_secs(20) { MILLI } else { MILLI * 20 };
        let node = Node { service: MILLI / 10, way };
        let (delivered, _) = node.run(change * 2, change * 3);
        assert!(delivered > 100_000, "{delivered} of 200000");
    }

    #[test]
    fn a_node_that_fails_is_sent_little() {
        let mut pace = Pace::new(Instant::ZERO);
        for _ in 0..100 {
            pace.acknowledged(Instant::ZERO, MILLI);
        }
        assert!(pace.has_room(100));
        (0..10).for_each(|_| pace.failed());
        assert!(pace.has_room(0) && !pace.has_room(1));
    }
}
