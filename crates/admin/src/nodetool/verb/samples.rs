//! Verbs that sample partitions: `tools.nodetool.ProfileLoad`, `TopPartitions`, `RangeKeySample`.

use super::args::Args;
use super::{VerbError, refused};
use crate::model::{SampleOrder, SampledTables, Sampler};

/// Counters of a sampler, unless it is said how many.
const CAPACITY: i32 = 256;
/// The most that may be asked for.
const CAPACITY_MAX: i32 = 1024;
/// How many are shown, unless it is said how many.
const TOP: i32 = 10;
/// Milliseconds of sampling, unless it is said how long.
const DURATION_MILLIS: i32 = 10_000;
/// There is no interval.
const NO_INTERVAL: i32 = -1;

/// A verb that samples partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SamplesVerb {
    /// `profileload`, `toppartitions`: samples now.
    Sample(SampleOrder),
    /// `profileload -i`: samples again and again, into the log.
    Schedule {
        /// What.
        order: SampleOrder,
        /// From one beginning to the next.
        interval_millis: u32,
    },
    /// `profileload -t`: ends that.
    Stop(SampledTables),
    /// `profileload -l`: what is sampled so.
    List,
    /// `rangekeysample`: keys that index summaries hold.
    KeyRange,
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<SamplesVerb>, VerbError> {
    Ok(Some(match name {
        "profileload" | "toppartitions" => profile(args)?,
        "rangekeysample" => SamplesVerb::KeyRange,
        _ => return Ok(None),
    }))
}

/// An option that is a whole number.
fn int(
    args: &mut Args,
    names: &[&'static str],
    title: &str,
    otherwise: i32,
) -> Result<i32, VerbError> {
    match args.titled(names, title)? {
        None => Ok(otherwise),
        Some(text) => match text.parse() {
            Ok(number) => Ok(number),
            Err(_) => refused(format!("{title}: can not convert \"{text}\" to a int")),
        },
    }
}

fn millis(text: &str) -> Result<i32, VerbError> {
    text.parse().or_else(|_| refused(format!("For input string: \"{text}\"")))
}

fn profile(args: &mut Args) -> Result<SamplesVerb, VerbError> {
    let capacity = int(args, &["-s"], "capacity", CAPACITY)?;
    let top = int(args, &["-k"], "topCount", TOP)?;
    let samplers = args.titled(&["-a"], "samplers")?;
    let interval = int(args, &["-i", "--interval"], "intervalMillis", NO_INTERVAL)?;
    let stops = args.flag(&["-t", "--stop"]);
    let lists = args.flag(&["-l", "--list"]);
    let words = args.rest();
    let wanted = |at: usize| words.get(at).filter(|word| *word != "*").cloned();
    if words.len() > 3 {
        return refused(
            "Invalid arguments, either [keyspace table/* duration] or [keyspace table/*] or \
             [duration] or no args.\nOptionally, use * to represent all tables under the keyspace.",
        );
    }
    if top <= 0 {
        return refused("TopK count (-k) option must have positive value");
    }
    if top >= capacity {
        return refused("TopK count (-k) option must be smaller then the summary capacity (-s)");
    }
    if capacity > CAPACITY_MAX {
        return refused("Capacity (-s) cannot exceed 1024.");
    }
    let (of, duration) = match words.as_slice() {
        [] => (SampledTables::default(), DURATION_MILLIS),
        [duration] => (SampledTables::default(), millis(duration)?),
        [_, _, rest @ ..] => {
            let of = SampledTables { keyspace: wanted(0), table: wanted(1) };
            (of, rest.first().map_or(Ok(DURATION_MILLIS), |word| millis(word))?)
        }
    };
    if duration <= 0 {
        return refused(format!("Duration: {duration} must be positive"));
    }
    let is_scheduled = interval != NO_INTERVAL;
    if is_scheduled && interval < duration {
        return refused(format!(
            "Invalid scheduled sampling interval. Expecting interval >= duration, but interval: \
             {interval} ms; duration: {duration} ms"
        ));
    }
    let samplers = samplers.map_or(Ok(Sampler::ALL.to_vec()), |names| named(&names))?;
    let positive = |number: i32| number.unsigned_abs();
    let (capacity, top) = (positive(capacity), positive(top));
    let duration_millis = positive(duration);
    Ok(match (stops, is_scheduled, lists) {
        (true, ..) => SamplesVerb::Stop(of),
        (false, true, _) => SamplesVerb::Schedule {
            order: SampleOrder { of, capacity, top, duration_millis, samplers },
            interval_millis: positive(interval),
        },
        (false, false, true) => SamplesVerb::List,
        (false, false, false) => {
            SamplesVerb::Sample(SampleOrder { of, capacity, top, duration_millis, samplers })
        }
    })
}

/// Samplers by name, with commas between them.
fn named(names: &str) -> Result<Vec<Sampler>, VerbError> {
    let mut samplers = Vec::new();
    for name in names.split(',') {
        let Some(sampler) = Sampler::named(&name.trim().to_uppercase()) else {
            let all = Sampler::ALL.map(Sampler::name).join(", ");
            return refused(format!("'{name}' sampler is not available from: [{all}]"));
        };
        if !samplers.contains(&sampler) {
            samplers.push(sampler);
        }
    }
    Ok(samplers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<SamplesVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Samples(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    fn tables(keyspace: &str, table: Option<&str>) -> SampledTables {
        SampledTables { keyspace: Some(keyspace.to_owned()), table: table.map(str::to_owned) }
    }

    fn order(of: SampledTables, duration_millis: u32) -> SampleOrder {
        let samplers = Sampler::ALL.to_vec();
        SampleOrder { of, capacity: 256, top: 10, duration_millis, samplers }
    }

    #[test]
    fn tables_and_time_are_both_optional() {
        let all = SampledTables::default();
        for verb in ["toppartitions", "profileload"] {
            let parse = |rest: &str| parse(&format!("{verb} {rest}"));
            assert_eq!(parse(""), Ok(SamplesVerb::Sample(order(all.clone(), 10_000))));
            assert_eq!(parse("500"), Ok(SamplesVerb::Sample(order(all.clone(), 500))));
            let one = tables("ks", Some("t"));
            assert_eq!(parse("ks t"), Ok(SamplesVerb::Sample(order(one.clone(), 10_000))));
            assert_eq!(parse("ks t 300"), Ok(SamplesVerb::Sample(order(one.clone(), 300))));
            let of_keyspace = order(tables("ks", None), 300);
            assert_eq!(parse("ks * 300"), Ok(SamplesVerb::Sample(of_keyspace)));
            assert_eq!(parse("-t ks t"), Ok(SamplesVerb::Stop(one)));
            assert_eq!(parse("-l"), Ok(SamplesVerb::List));
        }
        let some = SampleOrder {
            samplers: vec![Sampler::Reads, Sampler::Writes],
            capacity: 1024,
            top: 3,
            ..order(all.clone(), 500)
        };
        let parsed = parse("profileload -a reads,WRITES -s 1024 -k 3 500");
        assert_eq!(parsed, Ok(SamplesVerb::Sample(some)));
        let scheduled = SamplesVerb::Schedule { order: order(all, 500), interval_millis: 500 };
        assert_eq!(parse("profileload -i 500 500"), Ok(scheduled));
    }
}
