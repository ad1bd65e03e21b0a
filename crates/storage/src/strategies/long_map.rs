//! A map from numbers whose entries come in the order of a `java.util.HashMap<Long, _>`: which of
//! several buckets takes an SSTable depends on that order.

/// Entries of a table: where its capacity doubles, and where it starts.
const LOAD_PERCENT: usize = 75;
const CAPACITY: usize = 16;

/// The map.
#[derive(Debug)]
pub(crate) struct LongMap<V> {
    chains: Vec<Vec<(i64, V)>>,
    len: usize,
}

impl<V> LongMap<V> {
    pub fn new() -> Self {
        Self { chains: (0..CAPACITY).map(|_| Vec::new()).collect(), len: 0 }
    }

    fn chain(&self, key: i64) -> usize {
        let key = key.cast_unsigned();
        let hash = (key ^ (key >> 32)) as u32;
        (hash ^ (hash >> 16)) as usize & (self.chains.len() - 1)
    }

    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &V)> {
        self.chains.iter().flatten().map(|(key, value)| (*key, value))
    }

    /// Takes a value out.
    pub fn remove(&mut self, key: i64) -> Option<V> {
        let chain = self.chain(key);
        let chain = self.chains.get_mut(chain)?;
        let at = chain.iter().position(|(other, _)| *other == key)?;
        self.len -= 1;
        Some(chain.remove(at).1)
    }

    /// Puts a value in; one that was there is lost.
    pub fn put(&mut self, key: i64, value: V) {
        let chain = self.chain(key);
        let Some(chain) = self.chains.get_mut(chain) else { return };
        if let Some(entry) = chain.iter_mut().find(|(other, _)| *other == key) {
            entry.1 = value;
            return;
        }
        chain.push((key, value));
        self.len += 1;
        if self.len * 100 > self.chains.len() * LOAD_PERCENT {
            let doubled = (0..2 * self.chains.len()).map(|_| Vec::new()).collect();
            let old = std::mem::replace(&mut self.chains, doubled);
            for (key, value) in old.into_iter().flatten() {
                let chain = self.chain(key);
                if let Some(chain) = self.chains.get_mut(chain) {
                    chain.push((key, value));
                }
            }
        }
    }

    /// The values, in order.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.chains.into_iter().flatten().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `new HashMap<Long, ...>` of a JVM iterates.
    #[test]
    fn entries_come_in_the_order_of_the_jvm() {
        let mut map = LongMap::new();
        for key in [100, 17, 1, 33, 65_536, 1 << 32, -1] {
            map.put(key, key);
        }
        let keys: Vec<i64> = map.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [-1, 17, 1, 33, 65_536, 1 << 32, 100]);
        for key in 1000..1010 {
            map.put(key, key);
        }
        assert_eq!(map.remove(17), Some(17));
        map.put(33, 0);
        let keys: Vec<i64> = map.iter().map(|(key, _)| key).collect();
        let ordered = [-1, 1, 33, 65_536, 1 << 32, 100];
        let others = keys.into_iter().filter(|key| !(1000..1010).contains(key));
        assert_eq!(others.collect::<Vec<_>>(), ordered);
        assert_eq!(map.into_values().filter(|v| *v == 0).count(), 1);
    }
}
