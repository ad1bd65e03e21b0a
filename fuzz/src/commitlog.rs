//! Segments of the commit log, of every compressor. Checksums of headers and markers are made to
//! fit: what is looked for lies behind them.

use sstable::compressor::Codec;
use storage::commitlog::{Compression, End, Reader};

const CLASSES: [&str; 5] =
    ["", "LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"];
const VERSION: i32 = 7;
const ID: i64 = 1_700_000_000_000;

fn crc(numbers: &[i32], bytes: &[u8]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    numbers.iter().for_each(|number| crc.update(&number.to_be_bytes()));
    crc.update(bytes);
    crc.finalize().to_be_bytes()
}

fn id_parts() -> [i32; 2] {
    [ID as i32, (ID >> 32) as i32]
}

fn header(parameters: &[u8]) -> Vec<u8> {
    let [low, high] = id_parts();
    let mut file = VERSION.to_be_bytes().to_vec();
    file.extend(ID.to_be_bytes());
    file.extend((parameters.len() as u16).to_be_bytes());
    file.extend(parameters);
    file.extend(crc(&[VERSION, low, high, parameters.len() as i32], parameters));
    file
}

fn section(file: &mut Vec<u8>, body: &[u8]) {
    let at = file.len() as i32;
    let [low, high] = id_parts();
    file.extend((at + 8 + body.len() as i32).to_be_bytes());
    file.extend(crc(&[low, high, at], &[]));
    file.extend(body);
}

fn record(mutation: &[u8]) -> Vec<u8> {
    let size = mutation.len() as i32;
    let mut record = size.to_be_bytes().to_vec();
    record.extend(crc(&[size], &[]));
    record.extend(mutation);
    record.extend(crc(&[size], mutation));
    record
}

/// How many records there are, and how the segment ended.
fn read(file: &[u8]) -> Option<(usize, End)> {
    let mut reader = Reader::new(file).ok()?;
    let mut records = 0;
    while reader.next_record().is_some() {
        records += 1;
    }
    Some((records, reader.end().expect("it ended")))
}

/// The first byte says which compressor, and what is anything: the file, the header's parameters,
/// what is stored of a section, a section's records, or a mutation, which must be read back.
pub fn commitlog(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let class = CLASSES[usize::from(choice % 5)];
    let compression = Compression::new(class, Default::default()).ok();
    let parameters = match class {
        "" => "{}".to_owned(),
        class => format!("{{\"compressionClass\":\"{class}\",\"compressionParameters\":{{}}}}"),
    };
    let mut codec = compression.as_ref().map(Compression::codec);
    let mut file = header(parameters.as_bytes());
    match choice / 5 % 5 {
        0 => file = data.to_vec(),
        1 => file = header(data),
        2 => {
            // lengths that ask for no more memory than a test may take
            let length = data.first_chunk::<2>().map_or(0, |two| u16::from_be_bytes(*two));
            let stored = data.get(2..).unwrap_or_default();
            section(&mut file, &[&i32::from(length).to_be_bytes(), stored].concat());
            section(&mut file, data);
        }
        3 => packed(&mut file, &mut codec, data),
        _ => {
            packed(&mut file, &mut codec, &record(data));
            packed(&mut file, &mut codec, &record(data));
            let wanted = if data.len() < 10 { 0 } else { 2 };
            let (records, end) = read(&file).expect("a good header");
            assert_eq!(records, wanted, "{class}");
            // a size of nothing is where the records of a section end, which is also where those
            // that were lost began
            assert!(data.is_empty() || (end == End::Clean) == (wanted == 2), "{class}: {end:?}");
        }
    }
    let _ = read(&file);
}

fn packed(file: &mut Vec<u8>, codec: &mut Option<Codec>, records: &[u8]) {
    let Some(codec) = codec else { return section(file, records) };
    let mut body = (records.len() as i32).to_be_bytes().to_vec();
    codec.compress(records, &mut body).expect("little enough");
    section(file, &body);
}
