//! Instructions by layer of the node, from what callgrind wrote of a run.

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

/// Adds up what each layer did. What is inlined counts where its source is, if that is ours; what is of a library, where the
/// function is that it is inlined in.
///
/// The format: <https://valgrind.org/docs/manual/cl-format.html>.
pub fn by_layer(dump: &str) -> Outcome<BTreeMap<&'static str, u64>> {
    let (mut files, mut functions) = (Names::default(), Names::default());
    let mut layers = BTreeMap::new();
    let (mut own, mut inlined) = (OTHERS, None);
    let (mut file, mut is_called) = ("", false);
    for line in dump.lines() {
        match line.split_once('=') {
            Some(("fl" | "fi" | "fe", name)) => {
                file = files.get(name);
                inlined = of_source(file);
            }
            Some(("fn", name)) => {
                let name = functions.get(name);
                own = of_source(file).unwrap_or_else(|| of_name(name));
            }
            // names that are given here may be meant by their number alone later
            Some(("cfi" | "cfl", name)) => drop(files.get(name)),
            Some(("cfn", name)) => drop(functions.get(name)),
            // the next line has what the called function did: that counts there
            Some(("calls", _)) => is_called = true,
            _ if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) =>
            {
                let cost = line.split(' ').nth(1).ok_or("a line of callgrind without a cost")?;
                if !std::mem::take(&mut is_called) {
                    *layers.entry(inlined.unwrap_or(own)).or_insert(0) += cost.parse::<u64>()?;
                }
            }
            _ => {}
        }
    }
    if layers.is_empty() { Err("nothing was counted".into()) } else { Ok(layers) }
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
    use super::by_layer;

    #[test]
    fn what_is_inlined_counts_where_its_source_is() {
        let dump = "events: Ir\n\nfl=(1) /x/crates/storage/src/read/mod.rs\nfn=(1) storage::read\n10 100\n\
                    fi=(3) /rustc/library/core/src/mem.rs\n* 5\nfi=(2) /x/crates/rows/src/row.rs\n+3 20\nfe=(1)\n11 1\ncfi=(4) /usr/lib.c\ncfn=(2) memcpy\ncalls=3 1\n11 70\n\
                    12 2\n\nfl=(4)\nfn=(2)\n1 70\n\nfl=(3)\nfn=(3) core::ptr::drop_in_place<cluster::read::Task<rows::Row>>\n9 7\n\n\
                    totals: 205\n";
        let layers: Vec<_> = by_layer(dump).expect("a dump").into_iter().collect();
        assert_eq!(
            layers,
            [("codec", 20), ("copies", 70), ("memtable and caches", 108), ("plan", 7)]
        );
        assert!(by_layer("events: Ir\n").is_err());
    }
}
