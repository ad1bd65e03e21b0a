//! How many hints a node is sent before it acknowledged the first of them: as many as it takes without becoming slower.
//!
//! Where hints wait at the node, and with them its reads, acknowledgements take longer than they did. So there may be one more
//! under way for each round in which they took about as long as the shortest of late, and fewer after one in which they did
//! not. Nothing has to be set for that, and a node that has nothing else to do is sent what it can take. (Cassandra sends a
//! number of bytes a second whatever the node does: so it is here where `hinted_handoff_throttle` is set.)

use std::time::Duration;

/// Hints under way at most.
const MOST: f64 = 1024.0;
/// Hints under way at the beginning.
const FIRST: f64 = 8.0;
/// An acknowledgement that takes longer than the shortest so many times, and this much more, says that hints wait.
const SLOWER: u32 = 2;
const SLACK: Duration = Duration::from_millis(1);
/// What is left of the window when hints wait, and when a node fails.
const LESS: f64 = 0.8;
const HALF: f64 = 0.5;
/// Acknowledgements after which the shortest one counts as a bit longer, so that a path that became slower is not taken for
/// a node that is busy.
const FORGET: u32 = 256;

/// The pace of one delivery.
#[derive(Debug)]
pub(super) struct Pace {
    window: f64,
    shortest: Option<Duration>,
    acknowledged: u32,
    /// Did acknowledgements become slower yet? Until then the window doubles with each round.
    has_slowed: bool,
    /// Acknowledgements until it may become smaller again.
    settling: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { window: FIRST, shortest: None, acknowledged: 0, has_slowed: false, settling: 0.0 }
    }
}

impl Pace {
    /// May another be sent with so many under way?
    pub fn has_room(&self, under_way: usize) -> bool {
        under_way < self.window as usize
    }

    /// One was acknowledged after so long.
    pub fn acknowledged(&mut self, after: Duration) {
        let shortest = self.shortest.map_or(after, |shortest| shortest.min(after));
        self.shortest = Some(shortest);
        self.acknowledged += 1;
        if self.acknowledged.is_multiple_of(FORGET) {
            self.shortest = Some(shortest + shortest / 16);
        }
        self.settling -= 1.0;
        if after <= shortest * SLOWER + SLACK {
            let more = if self.has_slowed { 1.0 / self.window } else { 1.0 };
            self.window = (self.window + more).min(MOST);
        } else if self.settling <= 0.0 {
            self.has_slowed = true;
            self.shrink(LESS);
        }
    }

    /// One was not.
    pub fn failed(&mut self) {
        self.has_slowed = true;
        self.shrink(HALF);
    }

    fn shrink(&mut self, to: f64) {
        // those under way were sent at the old pace: what they take says nothing of the new one
        self.settling = self.window;
        self.window = (self.window * to).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A node that takes `service` for each hint, one after the other, at the end of a way of `way`; hints under way at the
    /// end, how long they took then, and how many were delivered in `time`.
    fn run(service: Duration, way: Duration, time: Duration) -> (usize, Duration, u32) {
        let (mut pace, mut now, mut free) = (Pace::default(), Duration::ZERO, Duration::ZERO);
        let mut under_way: VecDeque<(Duration, Duration)> = VecDeque::new();
        let (mut took, mut delivered) = (Duration::ZERO, 0);
        while now < time {
            while pace.has_room(under_way.len()) {
                free = free.max(now + way / 2) + service;
                under_way.push_back((now, free + way / 2));
            }
            let Some((sent, acknowledged)) = under_way.pop_front() else { break };
            now = acknowledged;
            took = acknowledged - sent;
            pace.acknowledged(took);
            delivered += 1;
        }
        (under_way.len(), took, delivered)
    }

    #[test]
    fn a_node_is_kept_busy_and_no_queue_grows_there() {
        let millis = Duration::from_millis;
        for (service, way) in [(Duration::from_micros(50), millis(1)), (millis(1), millis(5))] {
            let time = Duration::from_secs(20);
            let (_, took, delivered) = run(service, way, time);
            let most = (time.as_secs_f64() / service.as_secs_f64()) as u32;
            assert!(delivered > most * 8 / 10, "{delivered} of {most}");
            assert!(took < (way + service) * 3 + SLACK * 2, "{took:?}");
        }
    }

    #[test]
    fn a_node_that_fails_is_sent_little() {
        let mut pace = Pace::default();
        (0..100).for_each(|_| pace.acknowledged(Duration::from_millis(1)));
        assert!(pace.has_room(100));
        (0..10).for_each(|_| pace.failed());
        assert!(pace.has_room(0) && !pace.has_room(1));
    }
}
