//! What callgrind wrote of a run of the node or of a client: instructions, by layer of the node
//! too, and allocations.

use std::collections::{BTreeMap, HashMap};

use crate::machine::Outcome;

/// Layers, by where their sources are below `crates/`: the first that fits.
const LAYERS: [(&str, &str); 18] = [
    ("env/src/real/", SOCKET),
    ("env/src/net", SOCKET),
    ("env/", "tasks and timers"),
    ("server/", PROTOCOL),
    ("protocol/", PROTOCOL),
    ("tls/", PROTOCOL),
    ("cql/", "plan"),
    ("cluster/", "plan"),
    ("schema/", "plan"),
    ("ring/", "plan"),
    ("storage/src/commitlog/", "commit log"),
    ("segment/", "commit log"),
    ("storage/", "memtable and caches"),
    ("sstable/", "SSTables"),
    ("rows/", "codec"),
    ("types/", "codec"),
    ("metrics/", "metrics"),
    ("heap/", MEMORY),
];
const SOCKET: &str = "socket and ring";
const PROTOCOL: &str = "protocol";
const MEMORY: &str = "memory";
/// Functions that are in no source of ours, by how their names begin.
const FOREIGN: [(&str, &str); 13] = [
    ("mi_", MEMORY),
    ("_mi_", MEMORY),
    ("malloc", MEMORY),
    ("free", MEMORY),
    ("mem", "copies"),
    ("__mem", "copies"),
    ("read", SOCKET),
    ("recv", SOCKET),
    ("send", SOCKET),
    ("write", SOCKET),
    ("syscall", SOCKET),
    ("async_task", "tasks and timers"),
    ("crc32", PROTOCOL),
];
/// What none of them names: of the language's and other libraries.
const OTHERS: &str = "others";
/// Functions of the heap that its users call for memory, new or more.
const ASKING: [&str; 6] = [
    "mi_malloc",
    "mi_zalloc",
    "mi_realloc",
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
];
/// Its own functions, which call one another.
const HEAP: [&str; 2] = ["mi_", "_mi_"];

/// What was done while a process was counted.
#[derive(Debug, Default, PartialEq)]
pub struct Counted {
    pub instructions: u64,
    pub allocations: u64,
    pub layers: BTreeMap<&'static str, u64>,
}

impl Counted {
    /// What is inlined counts where its source is, if that is ours; what is of a library, where the
    /// function is that it is inlined in.
    ///
    /// The format: <https://valgrind.org/docs/manual/cl-format.html>.
    pub fn parse(dump: &str) -> Outcome<Self> {
        let (mut files, mut functions) = (Names::default(), Names::default());
        let (mut file, mut function, mut called) = ("", "", "");
        let (mut own, mut inlined, mut is_called) = (OTHERS, None, false);
        let mut counted = Self::default();
        for line in dump.lines() {
            match line.split_once(['=', ':']) {
                Some(("fl" | "fi" | "fe", name)) => {
                    file = files.get(name);
                    inlined = of_source(file);
                }
                Some(("fn", name)) => {
                    function = functions.get(name);
                    own = of_source(file).unwrap_or_else(|| of_name(function));
                }
                // a name that is given here may be meant by its number alone later
                Some(("cfi" | "cfl", name)) => drop(files.get(name)),
                Some(("cfn", name)) => called = functions.get(name),
                Some(("calls", value)) => {
                    if ASKING.contains(&called) && !HEAP.iter().any(|own| function.starts_with(own))
                    {
                        let times = value.split(' ').next().unwrap_or_default();
                        counted.allocations += times.parse::<u64>()?;
                    }
                    // the next line has what the called function did: that counts there
                    is_called = true;
                }
                Some(("totals", value)) => counted.instructions = value.trim().parse()?,
                None if line.starts_with(|at: char| at.is_ascii_digit() || "+-*".contains(at)) => {
                    let cost = line.split(' ').nth(1).ok_or("a line without a cost")?;
                    if !std::mem::take(&mut is_called) {
                        let layer = inlined.unwrap_or(own);
                        *counted.layers.entry(layer).or_insert(0) += cost.parse::<u64>()?;
                    }
                }
                _ => {}
            }
        }
        match counted.layers.values().sum::<u64>() {
            // each line counts once, and in one layer
            sum if sum == counted.instructions && sum > 0 => Ok(counted),
            sum => Err(format!("{} instructions, by layer {sum}", counted.instructions).into()),
        }
    }
}

/// Names that stand where their number is first met.
#[derive(Default)]
struct Names<'a>(HashMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    /// The name of `(NUMBER) NAME`, or of `(NUMBER)`.
    fn get(&mut self, text: &'a str) -> &'a str {
        match text.split_once(' ') {
            Some((number, name)) => {
                self.0.insert(number, name);
                name
            }
            None => self.0.get(text).copied().unwrap_or_default(),
        }
    }
}

fn of_source(path: &str) -> Option<&'static str> {
    let (_, path) = path.rsplit_once("crates/")?;
    LAYERS.iter().find(|(source, _)| path.starts_with(source)).map(|(_, layer)| *layer)
}

/// A function of a library that is made for types of ours names them: the first one counts.
fn of_name(name: &str) -> &'static str {
    let places = LAYERS.iter().filter_map(|(source, layer)| {
        let module = source.replace("/src/", "::").replace('/', "::");
        Some((name.find(&module)?, *layer))
    });
    let ours = places.min_by_key(|(place, _)| *place).map(|(_, layer)| layer);
    let foreign = || FOREIGN.iter().find(|(begin, _)| name.starts_with(begin));
    ours.or_else(|| foreign().map(|(_, layer)| *layer)).unwrap_or(OTHERS)
}

#[cfg(test)]
mod tests {
    use super::Counted;

    #[test]
    fn who_asks_the_heap_is_told_from_the_heap_itself() {
        let dump = "events: Ir\n\nfl=(1) a.rs\nfn=(1) node::read\n5 100\ncfn=(2) mi_malloc_aligned\ncalls=7 1\n5 70\ncfn=(3) mi_free\ncalls=9 1\n\
                    5 9\nfn=(2)\ncfn=(4) mi_malloc\ncalls=5 1\n6 50\nfn=(5) node::update\ncfn=(4)\ncalls=2 1\n7 20\n\ntotals: 100\n";
        let counted = Counted::parse(dump).expect("a dump");
        let layers = [("others", 100)].into();
        assert_eq!(counted, Counted { instructions: 100, allocations: 9, layers });
        assert!(Counted::parse("events: Ir\n").is_err());
    }

    #[test]
    fn what_is_inlined_counts_where_its_source_is() {
        let dump = "events: Ir\n\nfl=(1) /x/crates/storage/src/read/mod.rs\nfn=(1) storage::read\n10 100\n\
                    fi=(3) /rustc/library/core/src/mem.rs\n* 5\nfi=(2) /x/crates/rows/src/row.rs\n+3 20\nfe=(1)\n11 1\ncfi=(4) /usr/lib.c\ncfn=(2) memcpy\ncalls=3 1\n11 70\n\
                    12 2\n\nfl=(4)\nfn=(2)\n1 70\n\nfl=(3)\nfn=(3) core::ptr::drop_in_place<cluster::read::Task<rows::Row>>\n9 7\n\n\
                    totals: 205\n";
        let layers: Vec<_> = Counted::parse(dump).expect("a dump").layers.into_iter().collect();
        assert_eq!(
            layers,
            [("codec", 20), ("copies", 70), ("memtable and caches", 108), ("plan", 7)]
        );
    }
}
