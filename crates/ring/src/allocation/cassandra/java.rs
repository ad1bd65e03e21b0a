//! What Java's library does and Cassandra's choice of tokens depends on: `java.util.Random`, the
//! order in which `java.util.PriorityQueue` gives equals, and that of a `java.util.HashMap`.

use std::net::IpAddr;

use types::Address;

/// `java.util.Random`: a linear congruential generator of 48 bits.
pub struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const INCREMENT: u64 = 0xB;
    const MASK: u64 = (1 << 48) - 1;
    /// `2^-53`: what a double's bits are worth.
    const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

    pub fn new(seed: u64) -> Self {
        Self((seed ^ Self::MULTIPLIER) & Self::MASK)
    }

    fn bits(&mut self, count: u32) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(Self::INCREMENT) & Self::MASK;
        self.0 >> (48 - count)
    }

    /// `nextDouble`: of `[0, 1)`.
    pub fn next_double(&mut self) -> f64 {
        let high = self.bits(26) << 27;
        (high + self.bits(27)) as f64 * Self::UNIT
    }
}

/// `java.util.PriorityQueue` of `Weighted`: the heaviest first. Which of equals comes first depends
/// on how the heap is kept, so it is kept as Java does.
#[derive(Default)]
pub struct Queue(Vec<(f64, usize)>);

impl Queue {
    /// The value with the heaviest weight, which stays.
    pub fn peek(&self) -> Option<(f64, usize)> {
        self.0.first().copied()
    }

    pub fn push(&mut self, weight: f64, value: usize) {
        let heap = &mut self.0;
        heap.push((weight, value));
        let mut at = heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !is_before(weight, heap[parent].0) {
                break;
            }
            heap.swap(at, parent);
            at = parent;
        }
    }

    /// Takes the value with the heaviest weight out.
    pub fn pop(&mut self) -> Option<(f64, usize)> {
        let heap = &mut self.0;
        if heap.is_empty() {
            return None;
        }
        let first = heap.swap_remove(0);
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= heap.len() {
                break;
            }
            if child + 1 < heap.len() && is_before(heap[child + 1].0, heap[child].0) {
                child += 1;
            }
            if !is_before(heap[child].0, heap[at].0) {
                break;
            }
            heap.swap(at, child);
            at = child;
        }
        Some(first)
    }
}

/// `Double.compare` the other way round.
fn is_before(weight: f64, other: f64) -> bool {
    other.total_cmp(&weight).is_lt()
}

/// Places of a `HashMap`'s keys in the order in which it goes through them, if they were put there
/// in this one. A bucket that becomes a tree (eight keys or more) is not modelled.
pub fn hash_map_order(keys: &[Address]) -> Vec<usize> {
    let mut buckets: usize = 16;
    while keys.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    let bucket = |key: &Address| {
        let hash = hash(key).cast_unsigned();
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    };
    let mut places: Vec<usize> = (0..keys.len()).collect();
    places.sort_by_key(|place| bucket(&keys[*place]));
    places
}

/// `InetSocketAddress.hashCode`.
fn hash(address: &Address) -> i32 {
    let ip = match address.ip {
        IpAddr::V4(four) => i32::from_be_bytes(four.octets()),
        IpAddr::V6(six) => six.octets().chunks(4).fold(0, |sum: i32, part| {
            let add = |word: i32, byte: &u8| (word << 8).wrapping_add(byte.cast_signed().into());
            sum.wrapping_add(part.iter().fold(0, add))
        }),
    };
    ip.wrapping_add(address.port.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_as_java() {
        // new Random(42): nextDouble twice
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_double(), 0.727_563_680_032_868_1);
        assert_eq!(random.next_double(), 0.683_223_471_759_845_4);
    }

    #[test]
    fn gives_the_heaviest_first() {
        let mut queue = Queue::default();
        for (value, weight) in [1.0, 3.0, 2.0, 3.0, -1.0].into_iter().enumerate() {
            queue.push(weight, value);
        }
        let values: Vec<usize> = std::iter::from_fn(|| queue.pop()).map(|entry| entry.1).collect();
        assert_eq!(values, [1, 3, 2, 0, 4]);
    }
}
