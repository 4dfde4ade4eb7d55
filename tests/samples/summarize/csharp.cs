// Copyright (c) 1994 Ada Björk
using System;
using Oars = Example.Oars;
using static System.Math;

namespace Example.Boats
{
    /// <summary>
    /// A boat that is moved by <see cref="Oar"/>s. It floats.
    /// </summary>
    public sealed partial class Boat<T> : IFloating where T : Oar
    {
        private string words = @"class ""NotThis""
public void Nor(this)";

        /// <summary>Rows so many strokes.</summary>
        public async Task<int> Row(int strokes)
        {
            if (strokes > 0) return Pull(strokes);
            return 0;
        }

        protected internal static bool Floats() => true;
    }

    public interface IFloating { bool Floats(); }
    public readonly record struct Stroke(int Length);
    enum Kind { Rowing, Sailing }
}
