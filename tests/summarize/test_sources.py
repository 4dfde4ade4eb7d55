"""What sources and scripts are told by: names in them, and no mark of their language."""

from collections.abc import Callable

from processors.summarize import Found

Make = Callable[..., Found]


def test_imports_are_no_comments(summary: Make) -> None:
    """What a preprocessor is told is no comment; classes and methods of Objective-C are types and functions."""
    found = summary(
        b"x.m",
        b"// Draws a whale.\n#import <Sea/Sea.h>\n#define TAIL 1\n\n@implementation Whale\n- (void)swim:(int)depth {\n}\n"
        b"+ (Whale *)whale { return nil; }\n@end\n",
    )
    assert found.attributes["comments"] == ["Draws a whale."]
    assert found.attributes["imports"] == ["Sea/Sea.h"]
    assert found.attributes["types"] == ["Whale"]
    assert found.attributes["functions"] == ["swim", "whale"]
